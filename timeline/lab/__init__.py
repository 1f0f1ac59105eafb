"""The lab: what another policy would have cost, on conversations that are recorded already."""
