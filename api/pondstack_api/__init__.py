"""The REST API of pondstack: reads come from the ledger, changes are asked of the controller."""
