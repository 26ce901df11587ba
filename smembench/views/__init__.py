"""What people see, drawn from rows of cases.csv and from run.json, never from a device."""
