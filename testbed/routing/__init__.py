"""Beliefs, costs and the policies that choose a target; the same at both tiers."""
