"""Who gets in: the token, client certificates, the page's session, and what each route asks for."""
