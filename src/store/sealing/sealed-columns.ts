import type { Tables } from '../schema.ts';

/** The context that each sealed value is bound to: its table, column and row. */
export const contexts = {
  secret: (server: { workspaceId: string; id: string }, name: string) =>
    `secrets|sealed_value|${server.workspaceId}|${server.id}|${name}`,
  clientToken: (server: { workspaceId: string; id: string }, location: string) =>
    `client_tokens|sealed_token|${server.workspaceId}|${server.id}|${location}`,
  capture: (workspaceId: string, callId: string) => `captures|sealed_document|${workspaceId}|${callId}`,
  answerPieces: (workspaceId: string, id: string) => `answer_pieces|sealed_pieces|${workspaceId}|${id}`,
  file: (workspaceId: string, id: string) => `files|sealed_head|${workspaceId}|${id}`,
  fileChunk: (workspaceId: string, id: string, number: number | string) =>
    `file_chunks|sealed_chunk|${workspaceId}|${id}|${number}`,
  grantTokens: (workspaceId: string, grantId: string) => `grants|sealed_tokens|${workspaceId}|${grantId}`,
  login: (id: string) => `authorizations|sealed_verifier|${id}`,
  macKey: (keyId: string) => `master_keys|sealed_mac_key|${keyId}`,
};

/** The columns of a row that make up a context. */
type Row = { readonly [column: string]: string };

/** A column that holds values sealed with the master key. */
export type SealedColumn = {
  table: keyof Tables;
  column: string;
  /** The columns that identify a row. */
  key: readonly [string, ...string[]];
  /** The other columns that the context needs. */
  needs: readonly string[];
  contextOf: (row: Row) => string;
};

/** All sealed columns; a test compares them with the tables. An empty value is not sealed. */
export const sealedColumns: readonly SealedColumn[] = [
  {
    table: 'secrets',
    column: 'sealed_value',
    key: ['server_id', 'name'],
    needs: ['workspace_id'],
    contextOf: ({ workspace_id: workspaceId = '', server_id: id = '', name = '' }) =>
      contexts.secret({ workspaceId, id }, name),
  },
  {
    table: 'client_tokens',
    column: 'sealed_token',
    key: ['server_id', 'location'],
    needs: ['workspace_id'],
    contextOf: ({ workspace_id: workspaceId = '', server_id: id = '', location = '' }) =>
      contexts.clientToken({ workspaceId, id }, location),
  },
  {
    table: 'grants',
    column: 'sealed_tokens',
    key: ['id'],
    needs: ['workspace_id'],
    contextOf: ({ workspace_id = '', id = '' }) => contexts.grantTokens(workspace_id, id),
  },
  {
    table: 'authorizations',
    column: 'sealed_verifier',
    key: ['id'],
    needs: [],
    contextOf: ({ id = '' }) => contexts.login(id),
  },
  {
    table: 'captures',
    column: 'sealed_document',
    key: ['call_id'],
    needs: ['workspace_id'],
    contextOf: ({ workspace_id = '', call_id = '' }) => contexts.capture(workspace_id, call_id),
  },
  {
    table: 'answer_pieces',
    column: 'sealed_pieces',
    key: ['id'],
    needs: ['workspace_id'],
    contextOf: ({ workspace_id = '', id = '' }) => contexts.answerPieces(workspace_id, id),
  },
  {
    table: 'files',
    column: 'sealed_head',
    key: ['id'],
    needs: ['workspace_id'],
    contextOf: ({ workspace_id = '', id = '' }) => contexts.file(workspace_id, id),
  },
  {
    table: 'file_chunks',
    column: 'sealed_chunk',
    key: ['file_id', 'number'],
    needs: ['workspace_id'],
    contextOf: ({ workspace_id = '', file_id = '', number = '' }) => contexts.fileChunk(workspace_id, file_id, number),
  },
  {
    table: 'master_keys',
    column: 'sealed_mac_key',
    key: ['id'],
    needs: [],
    contextOf: ({ id = '' }) => contexts.macKey(id),
  },
];
