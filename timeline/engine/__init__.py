"""What a render does: decide, hide, compact, ask for summaries, project, record."""
