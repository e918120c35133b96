"""URLs of comments: on an entity, on a table and its entities, and actions on one comment."""

from django.urls import path

from console.comments.views import changes, discussions

app_name = "comments"
urlpatterns = [
    path("a/<account>/t/<table>/comments/", discussions.of_table, name="table"),
    path("a/<account>/t/<table>/entity/comments/", discussions.of_entity, name="entity"),
    path("a/<account>/t/<table>/comments/add/", changes.add, name="add"),
    path("a/<account>/t/<table>/comments/<int:number>/", discussions.earlier, name="earlier"),
    path("a/<account>/comments/people/", discussions.people, name="people"),
    path("a/<account>/comments/<number>/", discussions.thread, name="thread"),
    path("a/<account>/comments/<int:number>/reply/", changes.reply, name="reply"),
    path("a/<account>/comments/<int:number>/resolve/", changes.resolve, name="resolve"),
    path("a/<account>/comments/<int:number>/edit/", changes.edit, name="edit"),
    path("a/<account>/comments/<int:number>/delete/", changes.delete, name="delete"),
]
