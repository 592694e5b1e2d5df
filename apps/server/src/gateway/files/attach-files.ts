import { type ContentBlock, resourceLinkRevision, type ToolCall, type ToolResult } from '@toolhost/mcp-protocol/mcp';
import { type FileHead, toFileHead } from '@toolhost/tool-config/file-names';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { createServerHosts } from '../../own-hosts.ts';
import { buildFilePath, createBasePathRemover, getFileId } from '../../routes.ts';
import type { HostedTool } from '../hosted/hosted-server.ts';
import type { TruncatedResult } from '../response/fit-result.ts';
import { estimateContentTokens } from '../response/json-response.ts';
import { type ResultFile, replacePlaceholders } from '../response/response-files.ts';
import type { FileOwner, FileStore, StoreFileResult } from './stored-files.ts';

export type FileDeps = { files: FileStore; fileUrls: FileUrls };

/** A call whose response has large files. */
export type CallWithFiles = FileOwner & { toolCall: ToolCall; tool: Pick<HostedTool, 'name'> };

/** Stores the large files of a result, and replaces their placeholders with links. */
export async function attachFiles(
  call: CallWithFiles,
  { files = [], ...result }: TruncatedResult,
  deps: FileDeps,
): Promise<ToolResult> {
  const blocks: ContentBlock[][] = [];
  // Stores one file after the other, so that a call with many files does not delay the writes of others.
  for (const file of files) blocks.push(await attachFile(call, file, deps));
  const tokens = (result.tokens ?? 0) + estimateContentTokens(blocks.flat());
  return { ...result, tokens, content: replacePlaceholders(result.content, blocks) };
}

async function attachFile(call: CallWithFiles, file: ResultFile, deps: FileDeps): Promise<ContentBlock[]> {
  const { toolCall, tool } = call;
  const fileHead = toFileHead(file.name, file.mediaType, tool.name);
  const size = file.bytes.length;
  const stored = await deps.files.save(call, fileHead, file.bytes, toolCall.requestId);
  if (stored.outcome !== 'kept') return [{ type: 'text', text: formatNotStoredText(fileHead, size, stored) }];
  const uri = deps.fileUrls.urlFor(stored.id, toolCall.ownOrigin);
  const text: ContentBlock = { type: 'text', text: formatStoredText(fileHead, size, uri) };
  const link: ContentBlock = { type: 'resource_link', uri, name: fileHead.name, mimeType: fileHead.mediaType, size };
  return supportsLinks(toolCall) ? [text, link] : [text];
}

/**
 * Returns true if the client's revision allows resource links. Clients of older revisions reject a result that contains
 * one.
 */
function supportsLinks({ generation, revision = '' }: ToolCall): boolean {
  return generation === 'stateless' || revision >= resourceLinkRevision;
}

/**
 * Describes a stored file. Many clients pass only the texts of a result to the model, so the text contains the URL too.
 */
function formatStoredText(fileHead: FileHead, size: number, uri: string): string {
  return `The response is a file: ${formatFile(fileHead, size)}. Download it from ${uri} within ten minutes. A tool that takes a file as Base64 also accepts this URL instead.`;
}

const storageNames = {
  workspace: 'the file storage of this workspace',
  address: 'the share of the file storage that unverified callers from this address have',
};

function formatNotStoredText(
  fileHead: FileHead,
  size: number,
  stored: Exclude<StoreFileResult, { outcome: 'kept' }>,
): string {
  const reason =
    stored.outcome === 'full'
      ? `the files of the last ten minutes fill ${storageNames[stored.scope]}; call the tool again in ${stored.freeInS} seconds`
      : 'it could not be stored; call the tool again later';
  return `The response is a file: ${formatFile(fileHead, size)}. It is too large for the result, and it has no URL: ${reason}, or request less data.`;
}

function formatFile({ name, mediaType }: FileHead, size: number): string {
  return `${name} (${mediaType}, ${size} bytes)`;
}

/** URLs of files: below the base URL, and on each server's own host. */
export type FileUrls = {
  /** Returns the URL of a file. `ownOrigin` is the origin of the server's own host, if the request was sent to it. */
  urlFor(id: string, ownOrigin: string | undefined): string;
  /** Returns the id in one of our file URLs, or undefined for any other text. */
  findId(text: string): string | undefined;
  /** Returns true if a file of this server is served at this origin of a server's own host. */
  isOwnOrigin(origin: string, slug: string): boolean;
};

/** Maximum length of a file URL, in characters. */
const maxUrlLength = 400;

export function createFileUrls(baseUrl: string, serverHosts: string | undefined): FileUrls {
  const hosts = serverHosts === undefined ? undefined : createServerHosts(serverHosts, baseUrl);
  const { origin, protocol } = new URL(baseUrl);
  const stripBasePath = createBasePathRemover(baseUrl);
  return {
    urlFor: (id, ownOrigin) => (ownOrigin ?? baseUrl) + buildFilePath(id),
    findId(text) {
      const url = text.length <= maxUrlLength && /^https?:/.test(text) ? parseUrl(text) : undefined;
      // Only the plain form is accepted: no credentials, query, fragment, or encoding.
      if (!url || url.href !== text || url.origin + url.pathname !== text) return undefined;
      if (url.origin === origin) return getFileId(stripBasePath(url.pathname));
      return url.protocol === protocol && hosts?.getSlug(url.host) ? getFileId(url.pathname) : undefined;
    },
    isOwnOrigin: (requestOrigin, slug) => hosts?.getOrigin(slug) === requestOrigin,
  };
}
