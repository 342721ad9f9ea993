"""What one ESXi host, or one node, holds too much of: separated pods, quorums, all replicas of an application."""
