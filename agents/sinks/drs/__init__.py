"""DRS VM-VM rules in vCenter."""
