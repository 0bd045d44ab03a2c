"""URLs of the full Django stack; ``/v1`` has its own handler (``ratchet_project.asgi``)."""

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
]
