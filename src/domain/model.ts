import type { ToolDefinition } from './search/own-tools.ts';

/** The APIs that models are asked by. */
export const modelKinds = ['anthropic', 'openai', 'gemini'] as const;
export type ModelKind = (typeof modelKinds)[number];

/** Answers of a model to one question of a person. */
export const mostModelSteps = 20;

/** Where each is, where nothing else is said. */
export const modelUrls: Readonly<Record<ModelKind, string>> = {
  anthropic: 'https://api.anthropic.com/v1',
  openai: 'https://api.openai.com/v1',
  gemini: 'https://generativelanguage.googleapis.com/v1beta',
};

/** A model, and the key that it is asked with; local ones need none. */
export type Model = { kind: ModelKind; url: string; name: string; key: string | undefined };

/** A part of what a model said. `meta` is text of its host, which goes back to it as it is. */
export type ModelPart =
  | { type: 'text' | 'thought'; text: string; meta?: string | undefined }
  | {
      type: 'call';
      id: string;
      tool: string;
      /** JSON, as the model wrote it. */
      arguments: string;
      meta?: string | undefined;
    };

export type ModelMessage =
  | { role: 'user'; text: string }
  | { role: 'model'; parts: readonly ModelPart[] }
  | {
      role: 'tools';
      results: readonly { id: string; tool: string; text: string; is_error?: boolean | undefined }[];
    };

/** What a model is asked. */
export type ModelQuestion = {
  workspaceId: string;
  model: Model;
  instructions: string | undefined;
  tools: readonly ToolDefinition[];
  messages: readonly ModelMessage[];
  onProgress: (progress: ModelProgress) => void;
  signal: AbortSignal | undefined;
};

/** The next words of an answer, or the tool whose arguments are being written. */
export type ModelProgress = { text: string } | { thought: string } | { tool: string };

/** Why a model ended its answer. */
export const modelFinishes = ['stop', 'tool-calls', 'length', 'content-filter', 'error', 'other'] as const;

/** The model of a question, as call records store it. */
export type RecordedModel = { name: string; input_tokens?: number | undefined; output_tokens?: number | undefined };

export type ModelAnswer = {
  parts: ModelPart[];
  finish: (typeof modelFinishes)[number];
  usage: { input: number | undefined; output: number | undefined };
};
