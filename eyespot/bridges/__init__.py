"""eyespot inside other tools of the field, and theirs inside eyespot."""
