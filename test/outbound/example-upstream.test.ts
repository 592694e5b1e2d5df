import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { startProjectsApi } from '../../examples/projects/upstream.ts';

type Row = Record<string, string | null>;
type Api = Awaited<ReturnType<typeof startProjectsApi>>;

const key = { apikey: 'local-example-key' };
const prefer = { Prefer: 'return=representation' };
const unknownId = '00000000-0000-4000-8000-000000000000';
const start = (file = ':memory:', port = 0) => startProjectsApi({ host: '127.0.0.1', port, file });

/** Sends requests to a running API and checks the responses. */
function createClient(api: Api) {
  const send = (method: string, path: string, body?: unknown, headers: object = {}) => {
    const text = typeof body === 'string' || body instanceof Blob ? body : JSON.stringify(body);
    const init = { method, headers: { ...key, ...headers } };
    return fetch(`${api.url}/rest/v1/${path}`, text === undefined ? init : { ...init, body: text });
  };
  const rows = async (method: string, path: string, body?: unknown): Promise<Row[]> => {
    const response = await send(method, path, body, prefer);
    const text = await response.text();
    assert.equal(response.status, method === 'POST' ? 201 : 200, text);
    assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
    return JSON.parse(text);
  };
  const create = async (table: string, values: Row): Promise<Record<string, string>> => {
    const [row] = await rows('POST', table, values);
    assert.match(row?.id ?? '', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    return row as Record<string, string>;
  };
  /** `expected` is the status and the code, as in '404 PGRST205'. */
  const refused = async (expected: string, method: string, path: string, body?: unknown): Promise<Row> => {
    const response = await send(method, path, body, prefer);
    const text = await response.text();
    const error: Row = JSON.parse(text);
    assert.equal(`${response.status} ${error.code}`, expected, `${method} ${path}: ${text}`);
    assert.deepEqual(Object.keys(error), ['code', 'message', 'details', 'hint']);
    return error;
  };
  const silent = async (method: string, path: string, body?: unknown, headers = {}) => {
    const response = await send(method, path, body, headers);
    assert.equal(`${response.status}${await response.text()}`, '204');
  };
  return { send, rows, create, refused, silent };
}

describe('example upstream: reading', async () => {
  const api = await start();
  after(() => api.close());
  const { rows, refused } = createClient(api);
  const titles = async (query: string) => (await rows('GET', `tasks?${query}`)).map((row) => row.title);
  const all = ['Draw the new start page', 'Measure the loading time', 'Return the old keys'];

  it('is seeded with two projects and their tasks, in order of creation', async () => {
    const [first, second] = await rows('GET', 'projects');
    assert.deepEqual(Object.keys(first ?? {}), ['id', 'name', 'description', 'status']);
    assert.deepEqual([first?.status, second?.status], ['active', 'archived']);
    assert.deepEqual(await titles(''), all);
  });

  // The initials of the expected tasks (Draw, Measure, Return), and a query that finds them.
  const queries = `
    - status=eq.nothing                         - status=in.()
    - title=like.return*                        - title=like.%3Feturn*          - title=like.[R]eturn*
    R title=like.*the+old*                      R title=like._eturn+%25         R title=ilike.return*
    R title=eq.Return+the%20old+keys            R title=in.("a,\\"b",Return+the+old+keys)
    M status=eq.todo                            DR status=neq.todo              MR status=in.(todo,done)
    D due_date=gt.2026-06-30                    DR due_date=gte.2026-06-30      M assignee=is.null
    R due_date=lt.2027-03-01                    DR due_date=lte.2027-03-01
    R due_date=gt.2026-01-01&due_date=lt.2027-01-01
    D priority=eq.high&status=eq.in_progress    - priority=eq.high&status=eq.done
    M id=eq.A3D9E6F4-82B1-4E0D-B6C5-7F2D1C9E8A02
    DM limit=2     - limit=0     R offset=2     M limit=1&offset=1              MD order=title.desc&offset=1
    RMD order=title.desc                        DRM order=assignee              MRD order=assignee.desc
    MDR order=assignee.asc.nullsfirst           RDM order=assignee.desc.nullslast,title`;
  for (const [, initials = '', query = ''] of queries.matchAll(/(\S+) (\S+)/g)) {
    it(`responds to GET tasks?${query}`, async () => {
      assert.equal((await titles(query)).map((title) => title?.[0]).join('') || '-', initials);
    });
  }

  it('selects columns', async () => {
    const priorities = await rows('GET', 'tasks?select=priority,%20status&limit=1');
    assert.deepEqual(priorities, [{ priority: 'high', status: 'in_progress' }]);
    assert.equal(Object.keys((await rows('GET', 'tasks?select=*'))[0] ?? {}).length, 8);
  });

  const refusals: Record<string, string> = {
    '404 PGRST205': 'users constructor projects/1 %70rojects tasks/',
    '400 42703': `tasks?colour=eq.red tasks?constructor=eq.x tasks?rowid=eq.1 tasks?select=title,secret tasks?select=
      tasks?order=secret.asc`,
    '400 PGRST100': `tasks?status=todo tasks?status=is.true tasks?status=constructor.x tasks?status=in.todo,done
      tasks?status=in.(to"do) tasks?order=title.sideways tasks?order=title;DROP tasks?limit=ten tasks?limit=-1
      tasks?limit= tasks?offset=-1`,
    '400 22P02': `tasks?id=eq.7 tasks?id=in.(${unknownId},7)`,
    '400 22007': 'tasks?due_date=lt.tomorrow tasks?due_date=eq.2027-02-30',
  };
  for (const [expected, paths] of Object.entries(refusals)) {
    it(`rejects invalid queries with ${expected}`, async () => {
      for (const path of paths.split(/\s+/)) await refused(expected, 'GET', path);
    });
  }

  it('explains a missing operator', async () => {
    const { details, hint } = await refused('400 PGRST100', 'GET', 'projects?status=active');
    assert.match(`${details} ${hint}`, /status needs an operator.*eq\.active.*is\.null/);
  });
});

describe('example upstream: creating', async () => {
  const api = await start();
  after(() => api.close());
  const { send, rows, create, refused, silent } = createClient(api);

  it('fills in IDs and defaults', async () => {
    const { id: project_id = '', ...project } = await create('projects', { name: 'Garden' });
    assert.deepEqual(project, { name: 'Garden', description: null, status: 'active' });
    const { id: _, ...task } = await create('tasks', { project_id, title: 'Dig' });
    const empty = { description: null, assignee: null, due_date: null };
    assert.deepEqual(task, { ...empty, project_id, title: 'Dig', status: 'todo', priority: 'medium' });
  });

  it('stores the given values', async () => {
    const values = { name: 'Ünïcødé 🌱', description: "'; DROP TABLE projects; --", status: 'archived' };
    const { id } = await create('projects', values);
    assert.deepEqual(await rows('GET', `projects?id=eq.${id}`), [{ id, ...values }]);
    const ownId = randomUUID();
    assert.equal((await create('projects', { id: ownId, name: 'Own id' })).id, ownId);
  });

  it('responds with an empty 204 unless the rows are requested', async () => {
    await silent('POST', 'projects', { name: 'Silent' });
    await silent('POST', 'projects', { name: 'Silent' }, { Prefer: 'return=minimal' });
    assert.equal((await rows('GET', 'projects?name=eq.Silent')).length, 2);
    const requested = await send('POST', 'projects', { name: 'x' }, { Prefer: 'count=exact, return=representation' });
    assert.deepEqual([requested.status, requested.headers.get('preference-applied')], [201, prefer.Prefer]);
  });

  it('creates several rows together, all or none', async () => {
    const created = await rows('POST', 'projects?select=status', [{ name: 'a' }, { name: 'b', status: 'archived' }]);
    assert.deepEqual(created, [{ status: 'active' }, { status: 'archived' }]);
    assert.deepEqual(await rows('POST', 'projects', []), []);
    await refused('400 23514', 'POST', 'projects', [{ name: 'Half' }, { name: 'Half', status: 'lost' }]);
    assert.deepEqual(await rows('GET', 'projects?name=eq.Half'), []);
  });
});

describe('example upstream: updating and deleting', async () => {
  const api = await start();
  after(() => api.close());
  const { send, rows, create, refused, silent } = createClient(api);

  it('updates the given fields of the rows that match', async () => {
    const project = await create('projects', { name: 'Old', description: 'Kept' });
    const path = `projects?id=eq.${project.id}`;
    const changed = { ...project, name: 'New', status: 'archived' };
    assert.deepEqual(await rows('PATCH', path, { name: 'New', status: 'archived' }), [changed]);
    assert.deepEqual(await rows('PATCH', path, {}), [changed]);
    assert.deepEqual(await rows('GET', path), [changed]);
    assert.deepEqual(await rows('PATCH', `${path}&select=description`, { description: null }), [{ description: null }]);
    assert.deepEqual(await rows('PATCH', `projects?id=eq.${unknownId}`, { name: 'x' }), []);
  });

  it('responds with an empty 204 unless the rows are requested', async () => {
    const path = `projects?id=eq.${(await create('projects', { name: 'Quiet' })).id}`;
    await silent('PATCH', path, { name: 'Quieter' });
    assert.equal((await rows('GET', path))[0]?.name, 'Quieter');
    await silent('DELETE', path);
    assert.deepEqual(await rows('GET', path), []);
  });

  it('deletes the tasks of a deleted project and no others', async () => {
    const deletedProject = await create('projects', { name: 'Doomed' });
    const keptProject = await create('projects', { name: 'Spared' });
    await create('tasks', { project_id: deletedProject.id ?? '', title: 'Gone' });
    const keptTask = await create('tasks', { project_id: keptProject.id ?? '', title: 'Kept' });
    assert.deepEqual(await rows('DELETE', `projects?id=eq.${deletedProject.id}`), [deletedProject]);
    assert.deepEqual(await rows('GET', `tasks?project_id=in.(${deletedProject.id},${keptProject.id})`), [keptTask]);
    assert.deepEqual(await rows('DELETE', `tasks?id=eq.${keptTask.id}`), [keptTask]);
    assert.deepEqual(await rows('DELETE', `tasks?id=eq.${keptTask.id}`), []);
  });

  it('rejects changes to every row', async () => {
    const untouched = await rows('GET', 'tasks');
    for (const body of [{ title: 'x' }, {}]) await refused('400 21000', 'PATCH', 'tasks', body);
    for (const path of ['tasks', 'tasks?select=id']) await refused('400 21000', 'DELETE', path);
    await refused('400 PGRST109', 'DELETE', 'tasks?limit=1&status=eq.todo');
    assert.deepEqual(await rows('GET', 'tasks'), untouched);
  });

  it('supports four methods', async () => {
    await refused('405 PGRST117', 'PUT', 'projects', { name: 'x' });
    assert.equal((await send('PUT', 'projects')).headers.get('allow'), 'GET, POST, PATCH, DELETE');
  });
});

describe('example upstream: the process', async () => {
  const api = await start();
  after(() => api.close());

  it('requires the key before anything else', async () => {
    for (const headers of [new Headers(), { apikey: '' }, { apikey: 'x' }, { Authorization: key.apikey }]) {
      const response = await fetch(`${api.url}/rest/v1/users`, { headers });
      assert.match(`${response.status} ${await response.text()}`, /^401 .*"message":"[^"]*API key/);
    }
  });

  it('stores its rows in the file, seeds only once, and explains why it cannot start', async (test) => {
    const folder = await mkdtemp(join(tmpdir(), 'toolhost-example-'));
    test.after(() => rm(folder, { recursive: true }));
    await assert.rejects(start(':memory:', api.port), { code: 'EADDRINUSE' });
    await assert.rejects(start(folder), { code: 'ERR_SQLITE_ERROR' });
    const first = await start(join(folder, 'projects.sqlite'));
    await createClient(first).rows('DELETE', `projects?id=neq.${unknownId}`);
    const created = await createClient(first).create('projects', { name: 'Lasting' });
    await first.close();
    await assert.rejects(fetch(first.url));
    const second = await start(join(folder, 'projects.sqlite'));
    test.after(() => second.close());
    assert.deepEqual(await createClient(second).rows('GET', 'projects'), [created]);
    assert.deepEqual(await createClient(second).rows('GET', 'tasks'), []);
  });
});
