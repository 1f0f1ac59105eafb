"""The lab: compute what another policy would have cost on recorded conversations."""
