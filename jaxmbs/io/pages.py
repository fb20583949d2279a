"""What pages of the library may do: nothing but show what is in them."""

# scripts are those of the page itself; nothing is loaded, and nothing can be sent anywhere
POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">"
)
