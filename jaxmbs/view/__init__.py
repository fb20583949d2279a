"""Pictures of a mechanism."""

from jaxmbs.view.info import info_text as info_text
