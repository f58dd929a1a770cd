//! How people share a picture: participants, views, ordering of changes.
