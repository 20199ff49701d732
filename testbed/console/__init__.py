"""What people see in the terminal: progress while a run goes on, tables after it."""
