"""Registration methods side by side: problems, methods, guarded runs, tables and figures."""
