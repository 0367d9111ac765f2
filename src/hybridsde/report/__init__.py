"""What people see: figures and terminal output."""
