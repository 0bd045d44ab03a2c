"""Licences, Merkle trees, signatures, bills of materials, proofs, savings receipts."""
