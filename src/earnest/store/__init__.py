"""What outlives the process: the durable tables, the receipts on disk, the payloads beside them."""
