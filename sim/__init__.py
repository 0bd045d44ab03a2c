"""Mock world, mock models, the simulator and the demo. Plugged in by dotted path; nothing imports it."""
