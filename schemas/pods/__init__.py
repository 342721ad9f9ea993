"""Parts of pods: what is read of their volumes, and what the pods of one owner have in common."""
