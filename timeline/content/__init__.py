"""What a block holds beside its text: content in a provider's own form, and what it counts."""
