"""People whom the command adds: their passwords are generated, and changed at the first sign-in."""


def sign_in_first(page, name, generated):
    """Sign in with a generated password, and choose another one, which is asked for before anything else."""
    chosen = f"{name} chose this"
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password", exact=True).fill(generated)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_label("Current password").fill(generated)
    page.get_by_label("New password", exact=True).fill(chosen)
    page.get_by_label("Confirm new password").fill(chosen)
    page.get_by_role("button", name="Change password").click()
    page.wait_for_url("**/ui/")
