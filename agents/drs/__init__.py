"""What DRS is asked for: the VMs that must be apart or together because of the pods they run, in few rules."""
