import sys, os, json
import pytest
try:
    from console.grid.keys import write_key
except ImportError:
    from console.entities.keys import write_key
from storage.domain.entities.entity import EntityKey
from storage.domain.values.etag import write_etag
from storage.operations import entities, tables

ROOT = os.getcwd() + "/"
LAYERS = ["models","site","snippets","people","grid","queries","entities","policies","sas","accounts","tables","activity","help","home"]
HTMX = {"HX-Request": "true"}

def module(code):
    f = code.co_filename
    if f.startswith(ROOT + "console/"):
        name = f[len(ROOT):-3].replace("/", ".")
        return name
    return None

def rank(m):
    part = m.split(".")[1]
    return LAYERS.index(part) if part in LAYERS else -1

class Flow:
    def __init__(self, entry): self.entry, self.stack, self.on, self.mods, self.returns, self.up, self.edges = entry, [], 0, {}, 0, 0, {}
    def __call__(self, frame, event, arg):
        if event == "call":
            m = module(frame.f_code)
            code = frame.f_code
            if not self.on and m in self.entry and code.co_name not in ("<module>",): self.on = frame
            if self.on and m:
                if code.co_name == "<module>": m = None
            if self.on and m:
                self.mods.setdefault(m, 0); self.mods[m] += 1
                last = next((x for x in reversed(self.stack) if x), None)
                if last and last != m:
                    self.returns += 1
                    e = (last, m); self.edges[e] = self.edges.get(e, 0) + 1
                    if rank(m) > rank(last) >= 0: self.up += 1
            if self.on: self.stack.append(m)
        elif event == "return" and self.on:
            if self.stack: self.stack.pop()
            if frame is self.on: self.on = 0; self.stack = []; self.entry = ()

def run(entry, call):
    call()  # warm: imports, caches, templates
    flow = Flow(entry)
    sys.setprofile(flow)
    try: answer = call()
    finally: sys.setprofile(None)
    return flow, answer

def report(name, flow, answer):
    edges = sum(1 for _ in flow.edges)
    print(f"\n== {name}: status {answer.status_code}, modules {len(flow.mods)}, crossings {flow.returns}, distinct edges {edges}, upward {flow.up}")
    for m, n in sorted(flow.mods.items()): print("   ", m, n)

VIEWS_CELL = ("console.views.cell", "console.entities.views.cell")
VIEWS_PAGE = ("console.views.entities", "console.entities.views.browse", "console.entities.views.page", "console.entities.views.table")

def test_flow(visit, people, account, capsys):
    people("se", "ada", Name="Ada", Age=36); people("se", "eva", Name="Eva", Age=40)
    client = visit("eve")
    def save(number=[100]):
        number[0] += 1
        stored = entities.get(tables.get(account.pk, "people"), EntityKey("se", "ada"))
        return client.post("/ui/a/acme/t/people/cell/", {"key": write_key(EntityKey("se", "ada")), "property": "Age", "etag": write_etag(stored.timestamp), "type": "Edm.Int32", "value": str(number[0]), "index": "2", "column": ["PartitionKey", "RowKey", "Name", "Age", "Timestamp"], "next": "/ui/a/acme/t/people/"}, headers=HTMX)
    from django.db import connection
    from django.test.utils import CaptureQueriesContext
    flow, answer = run(VIEWS_CELL, save)
    with capsys.disabled(): report("cell save", flow, answer)
    def page(): return client.get("/ui/a/acme/t/people/", {"f": "Age gt 30"})
    flow, answer = run(VIEWS_PAGE, page)
    with capsys.disabled(): report("$filter page", flow, answer)
    def part(): return client.get("/ui/a/acme/t/people/", {"f": "Age gt 30"}, headers=HTMX)
    flow, answer = run(VIEWS_PAGE, part)
    with capsys.disabled(): report("$filter page, part", flow, answer)
