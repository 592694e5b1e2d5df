import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Check } from '../../src/doctor/checks.ts';
import { examine, examineWithLogin } from '../support/toolhost/doctor-command.ts';
import { toolhost } from '../support/toolhost/toolhost-command.ts';
import { type Answered, type Fault, json, startForeignMcpServer } from '../support/upstreams/foreign-mcp-server.ts';
import { at, method, result } from '../support/upstreams/mcp-faults.ts';

const rightToken = 'the-right-token';

describe('toolhost doctor', () => {
  describe('with a call', () => {
    const call = async (fault: Fault | undefined, ...args: string[]) => {
      const server = await startForeignMcpServer(fault);
      const examined = await examine(server.address, rightToken, ...args);
      await server.close();
      return { ...examined, call: examined.checks.find(({ id }) => id === 'call') };
    };

    it('[ship 6] calls a read-only tool, and any other tool only with --yes', async () => {
      const read = await call(undefined, '--call', 'first', '--args', '{"a": 1}');
      assert.deepEqual([read.code, read.call?.status], [0, 'ok']);
      assert.match(read.call?.detail ?? '', /text: called first$/);
      const refused = await call(undefined, '--call', 'second');
      assert.deepEqual([refused.code, refused.call?.status], [0, 'warning']);
      assert.match(refused.call?.detail ?? '', /not called.*readOnlyHint.*--yes/);
      const allowed = await call(undefined, '--call', 'second', '--yes');
      assert.match(allowed.call?.detail ?? '', /called second/);
    });

    const wrong: [name: string, fault: Fault, status: Check['status'], detail: RegExp][] = [
      ['has no content', result('tools/call', {}), 'problem', /no content/],
      [
        'is a protocol error',
        method('tools/call', () =>
          json(200, { jsonrpc: '2.0', id: 20, error: { code: -32603, message: 'a\u001b[2Jb' } }),
        ),
        'problem',
        /-32603: a \[2Jb/,
      ],
      [
        'reports a failure',
        result('tools/call', { isError: true, content: [{ type: 'text', text: 'no\nway' }] }),
        'warning',
        /error: no way/,
      ],
      [
        'is a list that Gemini CLI parses as structured content',
        result('tools/call', { content: [{ type: 'text', text: '[1,2]' }] }),
        'warning',
        /Gemini CLI fails/,
      ],
      [
        'lacks the structured content that the tool announces',
        method('tools/list', (usual) => {
          const listed = structuredClone(usual);
          const { tools } = (listed.body as { result: { tools: { outputSchema?: object }[] } }).result;
          for (const each of tools) each.outputSchema = { type: 'object' };
          return listed;
        }),
        'problem',
        /structuredContent/,
      ],
    ];
    for (const [name, fault, status, detail] of wrong) {
      it(`[ship 6] reports the problem of a result that ${name}`, async () => {
        const examined = await call(fault, '--call', 'first');
        assert.equal(examined.call?.status, status, JSON.stringify(examined.checks));
        assert.match(examined.call?.detail ?? '', detail);
      });
    }

    it('[ship 6] suggests the nearest tool name, and rejects arguments without a call', async () => {
      assert.match((await call(undefined, '--call', 'frist')).call?.detail ?? '', /no such tool.*`first`/);
      const { code, stderr } = await toolhost(['doctor', 'http://127.0.0.1:9/mcp', '--args', '{}']);
      assert.equal(code, 1);
      assert.match(stderr, /--call/);
    });
  });

  describe('with a login', () => {
    const withFault = async (fault?: Fault) => {
      const server = await startForeignMcpServer(fault);
      const examined = await examineWithLogin(server.address);
      await server.close();
      const of = (id: string) => examined.checks.find((check) => check.id === id);
      return { ...examined, of };
    };

    it('[ship 6] logs in, refreshes the token, checks the server with it, and ends the login', async () => {
      const revoked: string[] = [];
      const { code, of, stderr } = await withFault(
        at('revoke', (usual, { body }) => {
          revoked.push(new URLSearchParams(body).get('token') ?? '');
          return usual;
        }),
      );
      assert.equal(code, 0, stderr);
      for (const id of ['login', 'refresh', 'token', 'tool_list', 'logout']) assert.equal(of(id)?.status, 'ok', id);
      assert.deepEqual(revoked, ['the-refresh-token']);
      assert.doesNotMatch(stderr, /the-right-token|the-refresh-token/);
    });

    const grant = (change: (usual: Answered, form: URLSearchParams) => Answered | undefined): Fault =>
      at('token', (usual, { body }) => (usual.status === 200 ? change(usual, new URLSearchParams(body)) : undefined));
    const wrong: [name: string, fault: Fault, id: string, status: Check['status'], detail: RegExp][] = [
      [
        'issues no token',
        grant((_, form) => (form.has('code') ? json(400, { error: 'invalid_client' }) : undefined)),
        'login',
        'problem',
        /400 invalid_client/,
      ],
      [
        'issues no refresh token',
        grant(() => json(200, { access_token: 'the-right-token', token_type: 'Bearer' })),
        'refresh',
        'warning',
        /log in again/,
      ],
      [
        'refreshes only with a resource parameter',
        grant((_, form) =>
          form.get('grant_type') === 'refresh_token' && !form.has('resource')
            ? json(400, { error: 'invalid_target' })
            : undefined,
        ),
        'refresh',
        'problem',
        /400 invalid_target/,
      ],
      [
        'issues a token that it rejects',
        grant((usual) => ({ ...usual, body: { ...(usual.body as object), access_token: 'another' } })),
        'token',
        'problem',
        /401/,
      ],
      ['fails to revoke tokens', at('revoke', () => json(500, {})), 'logout', 'warning', /500/],
    ];
    for (const [name, fault, id, status, detail] of wrong) {
      it(`[ship 6] reports the problem of a server that ${name}`, async () => {
        const { of, code, checks } = await withFault(fault);
        assert.equal(of(id)?.status, status, JSON.stringify(checks, undefined, 1));
        assert.match(of(id)?.detail ?? '', detail);
        assert.equal(code, checks.some((check) => check.status === 'problem') ? 1 : 0);
      });
    }
  });
});
