"""Forms as the console's components draw them."""

from django.forms.renderers import TemplatesSetting


class Renderer(TemplatesSetting):
    form_template_name = "components/form.html"
    field_template_name = "components/field.html"
