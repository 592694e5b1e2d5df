import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { json } from '@codemirror/lang-json';
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  syntaxHighlighting,
  syntaxTree,
} from '@codemirror/language';
import { type Diagnostic, linter, lintGutter, lintKeymap } from '@codemirror/lint';
import { search, searchKeymap } from '@codemirror/search';
import { EditorState, StateEffect, StateField } from '@codemirror/state';
import { EditorView, highlightSpecialChars, keymap, lineNumbers, placeholder } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { Input, useMantineStyleNonce } from '@mantine/core';
import { IconBraces } from '@tabler/icons-react';
import { useEffect, useEffectEvent, useId, useLayoutEffect, useRef } from 'react';
import type { FieldProblem } from '../../../api-types.ts';
import { Section } from '../../../ui/section.tsx';
import { toVisible } from '../../../ui/text/visible.ts';
import { findJsonLocation, getCompletions } from './json-locations.ts';

type Props = {
  text: string;
  /** Parse error of the text. */
  parseError: string | undefined;
  problems: readonly FieldProblem[];
  warnings: readonly FieldProblem[];
  onChange: (text: string) => void;
  onBlur: () => void;
  isReadOnly: boolean;
};

const placeholderText = `Paste a configuration here, such as

{
  "name": "GitHub, read only",
  "slug": "github-read",
  "tools": [
    {
      "name": "get_repository",
      "description": "Get a public GitHub repository by owner and name",
      "method": "GET",
      "url": "https://api.github.com/repos/:owner/:repo",
      "input_schema": {
        "owner": { "type": "string" },
        "repo": { "type": "string" }
      }
    }
  ]
}`;

type ShownProblems = Pick<Props, 'parseError' | 'problems' | 'warnings'>;

const setShownProblems = StateEffect.define<ShownProblems>();
const shownProblems = StateField.define<ShownProblems>({
  create: () => ({ parseError: undefined, problems: [], warnings: [] }),
  update: (previous, { effects }) => effects.find((effect) => effect.is(setShownProblems))?.value ?? previous,
});

const maxDiagnostics = 50;

/** Returns problems and warnings as diagnostics at their location in the text. */
function getDiagnostics(state: EditorState): Diagnostic[] {
  const { parseError, problems, warnings } = state.field(shownProblems);
  if (parseError !== undefined) {
    let errorStart = state.doc.length;
    syntaxTree(state).iterate({
      enter: ({ type, from }) => {
        if (type.isError) errorStart = Math.min(errorStart, from);
      },
    });
    const errorEnd = Math.min(errorStart + 1, state.doc.length);
    return [{ from: errorStart, to: errorEnd, severity: 'error', message: parseError }];
  }
  const text = state.doc.toString();
  const toDiagnostics = (list: readonly FieldProblem[], severity: Diagnostic['severity']) =>
    list.slice(0, maxDiagnostics).map(({ path, message }) => {
      const { start: from, end: to } = findJsonLocation(text, path) ?? { start: 0, end: Math.min(1, text.length) };
      return { from, to, severity, message: toVisible(message) };
    });
  return [...toDiagnostics(problems, 'error'), ...toDiagnostics(warnings, 'warning')];
}

const highlightStyle = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--th-accent)' },
  { tag: tags.string, color: 'var(--th-good)' },
]);

function blurEditor({ contentDOM }: EditorView): boolean {
  contentDOM.blur();
  return true;
}

/** Replaces selected text. The browser would copy its color to a style attribute, which the page's policy blocks. */
function replaceSelected(event: InputEvent, view: EditorView): boolean {
  const { inputType, data: insert } = event;
  // The editor may learn of the selection only after this event.
  const selected = getSelection();
  if (inputType !== 'insertText' || insert === null || view.state.readOnly || !selected || selected.isCollapsed)
    return false;
  const range = selected.getRangeAt(0);
  const from = view.posAtDOM(range.startContainer, range.startOffset);
  const to = view.posAtDOM(range.endContainer, range.endOffset);
  const selection = { anchor: from + insert.length };
  const getChange = () =>
    view.state.update({ changes: { from, to, insert }, selection, userEvent: 'input.type', scrollIntoView: true });
  const handlers = view.state.facet(EditorView.inputHandler);
  if (!handlers.some((handle) => handle(view, from, to, insert, getChange))) view.dispatch(getChange());
  return true;
}

const baseExtensions = [
  EditorView.lineWrapping,
  EditorView.contentAttributes.of(({ state }) => ({
    'aria-invalid': String(
      state.field(shownProblems).parseError !== undefined || state.field(shownProblems).problems.length > 0,
    ),
  })),
  placeholder(placeholderText),
  json(),
  syntaxHighlighting(highlightStyle),
  lineNumbers(),
  foldGutter(),
  highlightSpecialChars(),
  bracketMatching(),
  closeBrackets(),
  history(),
  autocompletion({ override: [({ state, pos }) => getCompletions(state.doc.toString(), pos)], icons: false }),
  shownProblems,
  // The browser's search finds only lines that are rendered.
  search({ top: true, scrollToMatch: (match) => EditorView.scrollIntoView(match, { y: 'center' }) }),
  lintGutter(),
  linter(({ state }) => getDiagnostics(state), {
    delay: 200,
    needsRefresh: ({ startState, state }) => startState.field(shownProblems) !== state.field(shownProblems),
  }),
  // Tab is left to the browser: it leaves the editor, as Escape does.
  keymap.of([
    ...closeBracketsKeymap,
    ...completionKeymap,
    ...searchKeymap,
    ...lintKeymap,
    ...foldKeymap,
    ...historyKeymap,
    ...defaultKeymap,
    { key: 'Escape', run: blurEditor },
  ]),
];

/** JSON view of the configuration, with inline problems and completion of allowed names and values. */
export function JsonView({ text, parseError, problems, warnings, onChange, onBlur, isReadOnly }: Props) {
  const containerRef = useRef<HTMLDivElement>(null);
  const viewRef = useRef<EditorView>(undefined);
  const nonce = useMantineStyleNonce();
  const errorId = useId();
  const handleChange = useEffectEvent(onChange);
  const handleBlur = useEffectEvent(onBlur);
  const createExtensions = useEffectEvent(() => [
    EditorView.cspNonce.of(nonce?.() ?? ''),
    EditorState.readOnly.of(isReadOnly),
    EditorView.contentAttributes.of({
      'aria-label': 'Configuration as JSON',
      tabindex: '0',
      'aria-describedby': errorId,
    }),
    ...baseExtensions,
    EditorView.domEventHandlers({ blur: () => handleBlur(), beforeinput: replaceSelected }),
    EditorView.updateListener.of(({ docChanged, state, transactions }) => {
      const isOutside = transactions.some((transaction) => transaction.isUserEvent('outside'));
      if (docChanged && !isOutside) handleChange(state.doc.toString());
    }),
  ]);
  useLayoutEffect(() => {
    if (!containerRef.current) return;
    const view = new EditorView({ parent: containerRef.current, extensions: createExtensions() });
    const select = ({ detail }: CustomEvent<string>) => {
      const { start, end } = findJsonLocation(view.state.doc.toString(), detail) ?? { start: 0, end: 0 };
      view.dispatch({ selection: { anchor: start, head: end }, scrollIntoView: true });
      view.focus();
    };
    addEventListener('toolhost:select-json', select);
    viewRef.current = view;
    return () => {
      removeEventListener('toolhost:select-json', select);
      view.destroy();
    };
  }, []);
  useLayoutEffect(() => {
    if (viewRef.current) setDocument(viewRef.current, text);
  }, [text]);
  useEffect(() => {
    viewRef.current?.dispatch({ effects: setShownProblems.of({ parseError, problems, warnings }) });
  }, [parseError, problems, warnings]);
  return (
    <Section title="JSON" actions={<IconBraces size={18} aria-hidden />}>
      <div ref={containerRef} className="th-json-text" />
      <div id={errorId}>{parseError && <Input.Error mt="xs">{parseError}</Input.Error>}</div>
    </Section>
  );
}

/** Replaces only the changed range, so that caret, folds, and scroll position stay. */
function setDocument(view: EditorView, text: string) {
  const before = view.state.doc.toString();
  if (before === text) return;
  const maxLength = Math.min(before.length, text.length);
  let start = 0;
  while (start < maxLength && before[start] === text[start]) start++;
  let end = 0;
  while (end < maxLength - start && before.at(-1 - end) === text.at(-1 - end)) end++;
  const changes = { from: start, to: before.length - end, insert: text.slice(start, text.length - end) };
  view.dispatch({ changes, userEvent: 'outside' });
}
