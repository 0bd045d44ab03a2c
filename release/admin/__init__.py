"""Admin pages of what releases are about: students, their versions and tasks, and the operators' switches."""

from release.admin import flags, students, tasks, versions

__all__ = ["flags", "students", "tasks", "versions"]
