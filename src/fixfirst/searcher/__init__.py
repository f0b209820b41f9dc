"""The searcher: which orders to train next, running them anywhere, until the episode budget is used."""

from typing import TYPE_CHECKING

from fixfirst.faces import offers

if TYPE_CHECKING:
    from fixfirst.searcher.config import SearchConfig, resolve_search, search_config
    from fixfirst.searcher.executors.choice import Execution, make_executor
    from fixfirst.searcher.loop import Search, run_searches
    from fixfirst.searcher.shared import SharedSearch
    from fixfirst.searcher.strategy import Choice
    from fixfirst.searcher.study import Study, begin_study, open_study, study_name
    from fixfirst.searcher.trial import Message
else:
    __getattr__, __dir__ = offers(__name__)
