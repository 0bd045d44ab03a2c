"""Datasets, training, evaluation, calibration, nights."""
