"""Students behind one interface. A new kind of student is one backend here and one trainer in ``nightschool``."""
