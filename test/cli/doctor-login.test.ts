import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Check } from '@toolhost/mcp-doctor/checks';
import { assertFailed } from '../support/toolhost/command-world.ts';
import { runDoctor, runDoctorWithLogin } from '../support/toolhost/doctor-command.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import {
  type Fault,
  type ForeignResponse,
  jsonResponse,
  startForeignMcpServer,
} from '../support/upstreams/foreign-mcp-server.ts';
import { replaceMethodResponse, replaceMethodResult, replaceResponse } from '../support/upstreams/mcp-faults.ts';

const validToken = 'the-right-token';

describe('toolhost doctor', () => {
  describe('with a call', () => {
    const examineCall = async (fault: Fault | undefined, ...args: string[]) => {
      const server = await startForeignMcpServer(fault);
      const examined = await runDoctor(server.address, validToken, ...args);
      await server.close();
      return { ...examined, call: examined.checks.find(({ id }) => id === 'call') };
    };

    it('[ship 6] calls a read-only tool, and any other tool only with --yes', async () => {
      const read = await examineCall(undefined, '--call', 'first', '--args', '{"a": 1}');
      assert.deepEqual([read.code, read.call?.status], [0, 'ok']);
      assert.match(read.call?.detail ?? '', /text: called first$/);
      const refused = await examineCall(undefined, '--call', 'second');
      assert.deepEqual([refused.code, refused.call?.status], [0, 'warning']);
      assert.match(refused.call?.detail ?? '', /not called.*readOnlyHint.*--yes/);
      const allowed = await examineCall(undefined, '--call', 'second', '--yes');
      assert.match(allowed.call?.detail ?? '', /called second/);
    });

    const respondWithText = (text: string, more = {}) =>
      replaceMethodResult('tools/call', { ...more, content: [{ type: 'text', text }] });
    const protocolError = { jsonrpc: '2.0', id: 20, error: { code: -32603, message: 'a\u001b[2Jb' } };
    const announceOutput = replaceMethodResponse('tools/list', (defaultResponse) => {
      const listed = structuredClone(defaultResponse);
      const { tools } = (listed.body as { result: { tools: { outputSchema?: object }[] } }).result;
      for (const each of tools) each.outputSchema = { type: 'object' };
      return listed;
    });
    const failCall = replaceMethodResponse('tools/call', () => jsonResponse(200, protocolError));
    const faultCases: [name: string, status: Check['status'], detail: RegExp, fault: Fault][] = [
      ['has no content', 'problem', /no content/, replaceMethodResult('tools/call', {})],
      ['is a protocol error', 'problem', /-32603: a \[2Jb/, failCall],
      ['reports a failure', 'warning', /error: no way/, respondWithText('no\nway', { isError: true })],
      ['Gemini CLI parses as structured content', 'warning', /Gemini CLI fails/, respondWithText('[1,2]')],
      ['lacks the structured content that the tool announces', 'problem', /structuredContent/, announceOutput],
    ];
    for (const [name, status, detail, fault] of faultCases) {
      it(`[ship 6] reports the problem of a result that ${name}`, async () => {
        const examined = await examineCall(fault, '--call', 'first');
        assert.equal(examined.call?.status, status, JSON.stringify(examined.checks));
        assert.match(examined.call?.detail ?? '', detail);
      });
    }

    it('[ship 6] suggests the nearest tool name, and rejects arguments without a call', async () => {
      assert.match((await examineCall(undefined, '--call', 'frist')).call?.detail ?? '', /no such tool.*`first`/);
      assertFailed(await runToolhostCommand(['doctor', 'http://127.0.0.1:9/mcp', '--args', '{}']), /--call/);
    });
  });

  describe('with a login', () => {
    const examineWithFault = async (fault?: Fault) => {
      const server = await startForeignMcpServer(fault);
      const examined = await runDoctorWithLogin(server.address);
      await server.close();
      const of = (id: string) => examined.checks.find((check) => check.id === id);
      return { ...examined, of };
    };

    it('[ship 6] logs in, refreshes the token, checks the server with it, and ends the login', async () => {
      const revoked: string[] = [];
      const { code, of, stderr } = await examineWithFault(
        replaceResponse('revoke', (defaultResponse, { body }) => {
          revoked.push(new URLSearchParams(body).get('token') ?? '');
          return defaultResponse;
        }),
      );
      assert.equal(code, 0, stderr);
      for (const id of ['login', 'refresh', 'token', 'tool_list', 'logout']) assert.equal(of(id)?.status, 'ok', id);
      assert.deepEqual(revoked, ['the-refresh-token']);
      assert.doesNotMatch(stderr, /the-right-token|the-refresh-token/);
    });

    type ChangeGrant = (defaultResponse: ForeignResponse, form: URLSearchParams) => ForeignResponse | undefined;
    const changeGrant = (change: ChangeGrant) =>
      replaceResponse('token', (defaultResponse, { body }) =>
        defaultResponse.status === 200 ? change(defaultResponse, new URLSearchParams(body)) : undefined,
      );
    const rejectIf = (error: string, isRejected: (form: URLSearchParams) => boolean) =>
      changeGrant((_, form) => (isRejected(form) ? jsonResponse(400, { error }) : undefined));
    const rejectCode = rejectIf('invalid_client', (form) => form.has('code'));
    const isRefreshWithoutResource = (form: URLSearchParams) =>
      form.get('grant_type') === 'refresh_token' && !form.has('resource');
    const requireResource = rejectIf('invalid_target', isRefreshWithoutResource);
    const issueAnother = changeGrant(({ body, ...response }) => {
      return { ...response, body: { ...(body as object), access_token: 'another' } };
    });
    const accessToken = { access_token: 'the-right-token', token_type: 'Bearer' };
    const onlyAccess = changeGrant(() => jsonResponse(200, accessToken));
    const failRevocation = replaceResponse('revoke', () => jsonResponse(500, {}));
    const faultCases: [name: string, id: string, status: Check['status'], detail: RegExp, fault: Fault][] = [
      ['issues no token', 'login', 'problem', /400 invalid_client/, rejectCode],
      ['issues no refresh token', 'refresh', 'warning', /log in again/, onlyAccess],
      ['refreshes only with a resource parameter', 'refresh', 'problem', /400 invalid_target/, requireResource],
      ['issues a token that it rejects', 'token', 'problem', /401/, issueAnother],
      ['fails to revoke tokens', 'logout', 'warning', /500/, failRevocation],
    ];
    for (const [name, id, status, detail, fault] of faultCases) {
      it(`[ship 6] reports the problem of a server that ${name}`, async () => {
        const { of, code, checks } = await examineWithFault(fault);
        assert.equal(of(id)?.status, status, JSON.stringify(checks, undefined, 1));
        assert.match(of(id)?.detail ?? '', detail);
        assert.equal(code, checks.some((check) => check.status === 'problem') ? 1 : 0);
      });
    }
  });
});
