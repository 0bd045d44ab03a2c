"""How pages write dates, per language."""
