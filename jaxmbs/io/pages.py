"""The content security policy of the library's HTML pages: they may only show their own content."""

# only the page's own scripts run; nothing is loaded, and nothing can be sent anywhere
POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">"
)
