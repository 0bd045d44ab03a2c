"""Release policy, gate, evidence, operator actions. The only app that writes a version's state."""
