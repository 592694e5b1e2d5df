import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getErrorText } from '../support/one-tool.ts';
import { getToolNames } from '../support/server-requests.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

const token = 'local-example-key';

/** Spec 2.5, on a service in local mode. */
describe('the example server of local mode', () => {
  const toolhost = useFixture(() => startToolhost({ env: { DEMO: '1' } }));

  const call = async (name: string, args: object = {}) => {
    const result = await toolhost.callTool('projects', token, name, args as Record<string, unknown>);
    assert.notEqual(result.isError, true, JSON.stringify(result.content));
    return result.content[0]?.text ?? '';
  };
  const rows = async (name: string, args: object = {}) =>
    JSON.parse(await call(name, args)) as Record<string, unknown>[];

  it('lists its eight tools', async () => {
    const names = getToolNames(await toolhost.rpc('projects', token, 'tools/list'));
    const actions = ['create', 'delete'].flatMap((action) => [`${action}_project`, `${action}_task`]);
    assert.deepEqual(names.sort(), [...actions, 'list_projects', 'list_tasks', 'update_project', 'update_task']);
  });

  it('creates, updates, lists, and deletes projects and tasks, with cascading deletion', async () => {
    const [project] = await rows('create_project', { name: 'Garden' });
    assert.equal(project?.status, 'active');
    const [task] = await rows('create_task', { project_id: project?.id, title: 'Dig', due_date: '2026-12-01' });
    assert.deepEqual([task?.status, task?.priority, task?.due_date], ['todo', 'medium', '2026-12-01']);
    const [done] = await rows('update_task', { id: task?.id, status: 'done' });
    assert.equal(done?.status, 'done');
    const [archived] = await rows('update_project', { id: project?.id, status: 'archived' });
    assert.equal(archived?.status, 'archived');
    const found = await rows('list_projects', { status: 'eq.archived' });
    assert.ok(found.some((row) => row.id === project?.id));
    assert.equal((await rows('list_tasks', { project_id: `eq.${project?.id}`, status: 'eq.done' })).length, 1);
    assert.match(await call('delete_project', { id: project?.id }), /^204 No Content/);
    assert.equal((await rows('list_tasks', { project_id: `eq.${project?.id}` })).length, 0);
    const [second] = await rows('create_project', { name: 'Shed' });
    const [other] = await rows('create_task', { project_id: second?.id, title: 'Paint' });
    await call('delete_task', { id: other?.id });
    assert.equal((await rows('list_tasks', { project_id: `eq.${second?.id}` })).length, 0);
  });

  it('requires a token, and reports when the upstream rejects it', async () => {
    assert.equal((await toolhost.rpc('projects', undefined, 'tools/list')).status, 401);
    assert.match(getErrorText(await toolhost.callTool('projects', 'wrong', 'list_projects')), /^HTTP 401/);
  });
});
