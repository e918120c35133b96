"""URLs of metrics."""

from django.urls import path

from console.metrics import views

app_name = "metrics"
urlpatterns = [
    path("a/<account>/metrics/", views.account_metrics, name="account"),
    path("a/<account>/t/<table>/metrics/", views.table_metrics, name="table"),
]
