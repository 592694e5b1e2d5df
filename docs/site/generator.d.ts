/** Types for the parts of Eleventy that the site uses; Eleventy has no types of its own. */
declare module '@11ty/eleventy' {
  export type Token = {
    type: string;
    tag: string;
    content: string;
    children: Token[] | null;
    attrGet(name: string): string | null;
    attrSet(name: string, value: string): void;
  };
  export type MarkdownState = { tokens: Token[]; env: { source?: string } };
  export type Markdown = {
    set(options: { html: boolean }): Markdown;
    parse(text: string, env: { source?: string }): Token[];
    core: { ruler: { push(name: string, rule: (state: MarkdownState) => void): void } };
  };
  export type Configuration = {
    setQuietMode(isQuiet: boolean): void;
    amendLibrary(name: 'md', change: (markdown: Markdown) => void): void;
    addTransform(name: string, change: (content: string) => string): void;
    addTemplate(path: string, text: string, data: object): void;
    addGlobalData(name: string, value: unknown): void;
    addPassthroughCopy(files: Record<string, string>): void;
  };
  type Options = { quietMode?: boolean; configPath?: string; config: (configuration: Configuration) => object };
  export class Eleventy {
    constructor(input: string, output: string, options: Options);
    write(): Promise<unknown>;
  }
}
