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

/** A column that holds values sealed with the master key. */
export type SealedColumn = {
  table: keyof Tables;
  column: string;
  /** The columns that identify a row. */
  key: readonly [string, ...string[]];
  /** The other columns that the context needs. */
  needs: readonly string[];
};

const ofWorkspace = ['workspace_id'];

/** All sealed columns; a test compares them with the tables. An empty value is not sealed. */
export const sealedColumns: readonly SealedColumn[] = [
  { table: 'secrets', column: 'sealed_value', key: ['server_id', 'name'], needs: ofWorkspace },
  { table: 'client_tokens', column: 'sealed_token', key: ['server_id', 'location'], needs: ofWorkspace },
  { table: 'grants', column: 'sealed_tokens', key: ['id'], needs: ofWorkspace },
  { table: 'authorizations', column: 'sealed_verifier', key: ['id'], needs: [] },
  { table: 'captures', column: 'sealed_document', key: ['call_id'], needs: ofWorkspace },
  { table: 'answer_pieces', column: 'sealed_pieces', key: ['id'], needs: ofWorkspace },
  { table: 'files', column: 'sealed_head', key: ['id'], needs: ofWorkspace },
  { table: 'file_chunks', column: 'sealed_chunk', key: ['file_id', 'number'], needs: ofWorkspace },
  { table: 'master_keys', column: 'sealed_mac_key', key: ['id'], needs: [] },
];

/** The context of a value in a row: the same text as `contexts` gives. */
export function contextIn(
  { table, column, key, needs }: SealedColumn,
  row: { readonly [column: string]: string },
): string {
  return [table, column, ...[...needs, ...key].map((name) => row[name])].join('|');
}
