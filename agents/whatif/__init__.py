"""What happens if: plans of steps tried on a site, and what they leave behind."""
