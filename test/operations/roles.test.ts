import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { getRoleScopes, hasScope } from '@toolhost/credentials/credential';
import { operationList } from '@toolhost/server/operations';
import type { Operation } from '../../apps/server/src/operations/operation.ts';
import { createPersonSession, type Person } from '../support/browser/dashboard.ts';
import { buildMinimalInput, toRestRequest } from '../support/operation-inputs.ts';
import { createPersonClient, type Send } from '../support/toolhost/rest-clients.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** Operations that affect only the person: their workspaces and their mail notification settings. */
const personalOperations = new Set([
  ...['switchWorkspace', 'leaveWorkspace', 'createWorkspace', 'setNotificationSettings'],
  ...['setOwnValues', 'deleteOwnValues'],
]);
const changingOperations = operationList.filter((op) => op.effect !== 'read' && !personalOperations.has(op.name));
/** Operations whose input names a person or a workspace. */
const namingOperations = operationList.filter(
  (op) => op.dashboardRole && ('workspace_id' in op.input.shape || /\{/.test(op.route.path)),
);

describe('permissions of people in the dashboard', async () => {
  const upstream = await startRecordingUpstream();
  const toolhost = await startToolhost({ egressPorts: [upstream.port] });
  await toolhost.createServer(buildServerAt('owned', upstream.url));
  await toolhost.callTool('owned', 'a-token', 'get');
  upstream.take();
  after(() => Promise.all([toolhost.stop(), upstream.close()]));

  /** Signs a person in, and returns functions that send requests like their browser. */
  async function signIn(person: Person) {
    const request = createPersonClient(toolhost, await createPersonSession(toolhost, person));
    const send: Send = async (method, path, body) => {
      const { status, body: response } = await request(method, path, body);
      const { request_id: _, ...result } = response;
      return { status, body: result };
    };
    const run = (op: Operation, input: Json = {}) => {
      const { method, path, body } = toRestRequest(op, { ...buildMinimalInput(op), ...input });
      return send(method, path, body);
    };
    return { send, run };
  }

  /** Returns all data that an operation could have changed. */
  async function takeSnapshot(): Promise<string> {
    const owner = await signIn({ name: 'Picture' });
    const paths = ['/servers/owned', '/servers/owned/versions', '/servers/owned/secrets', '/keys', '/audit'];
    const replies = await Promise.all(paths.map((path) => owner.send('GET', path)));
    for (const { status } of replies) assert.equal(status, 200);
    return JSON.stringify(replies);
  }

  const existing = { slug: 'owned', tool: 'get', version: 1, name: 'KEY', hours: 1 };

  it('[sec E1] require more than a read scope for every changing operation', () => {
    assert.ok(changingOperations.length > 10);
    for (const op of changingOperations) assert.equal(hasScope(getRoleScopes('viewer'), op.scope), false, op.name);
  });

  for (const op of changingOperations) {
    it(`[sec E1] refuse ${op.name} to a viewer`, async () => {
      const viewer = await signIn({ name: 'Vera', role: 'viewer' });
      const earlier = await takeSnapshot();
      assert.equal((await viewer.run(op, existing)).status, 403);
      assert.equal(await takeSnapshot(), earlier);
      assert.deepEqual(upstream.take(), []);
    });
  }

  for (const op of operationList.filter(({ dashboardRole }) => dashboardRole === 'owner')) {
    it(`refuse ${op.name} to an editor`, async () => {
      const editor = await signIn({ name: 'Ed', role: 'editor' });
      assert.equal((await editor.run(op)).status, 403);
    });
  }

  it('[sec E1] let a viewer read the data of the workspace', async () => {
    const viewer = await signIn({ name: 'Vera', role: 'viewer' });
    for (const path of ['/servers', '/servers/owned', '/keys', '/calls', '/audit', '/members', '/statistics'])
      assert.equal((await viewer.send('GET', path)).status, 200, path);
  });

  for (const op of namingOperations) {
    it(`[sec E1] hide people and invitations of another workspace in ${op.name}, as if they were unknown`, async () => {
      const owner = await signIn({ name: 'Olga', workspace: 'wsp_theirs' });
      const { user } = (await owner.send('GET', '/session')).body as { user: { id: string } };
      await owner.send('POST', '/invitations', { email: 'guest@mail.example', role: 'editor' });
      const foreignInput = { id: user.id, email: 'guest@mail.example', workspace_id: 'wsp_theirs', role: 'viewer' };
      const unknownNames = { id: 'usr_unknown', email: 'absent@mail.example', workspace_id: 'wsp_unknown' };
      const pickKnownFields = (input: Json) =>
        Object.fromEntries(Object.entries(input).filter(([name]) => name in op.input.shape));
      const earlier = (await owner.send('GET', '/members')).body;
      const outsider = await signIn({ name: 'Mallory' });
      const foreign = await outsider.run(op, pickKnownFields(foreignInput));
      assert.equal(foreign.status, 404);
      assert.deepEqual(foreign, await outsider.run(op, pickKnownFields({ ...unknownNames, role: 'viewer' })));
      assert.deepEqual((await owner.send('GET', '/members')).body, earlier);
    });
  }
});
