"""What one ESXi host, or one node, holds too much of: separated pods, quorums, replicas, pods of a budget."""
