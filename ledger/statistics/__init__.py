"""Pure statistics over the ledger's counts."""
