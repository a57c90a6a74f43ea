"""Label queries to the end: lists of photos, marks of several people, a stopping rule, an audit of the rest, export.

`annotation_store.AnnotationStore` is where it is kept, `progress.standing` says how a query stands,
`audit_bounds.remaining` what is left unseen, `export.write` takes it away.
"""
