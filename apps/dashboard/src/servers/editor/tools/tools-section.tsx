import { Button, Stack, Text, Title } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import { IconPlus } from '@tabler/icons-react';
import { type Ref, useEffect, useEffectEvent, useRef, useState } from 'react';
import { createPortal } from 'react-dom';
import { useLocation, useNavigate, useSearchParams } from 'react-router';
import type { JsonObject } from '../../../api-types.ts';
import { Section } from '../../../ui/section.tsx';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { asList, asText, getTools, getValueAt, newTool } from '../../config.ts';
import { Errors, Warnings } from '../field-messages.tsx';
import { declareField, Fields } from '../fields.tsx';
import { getFieldId, useEditor, useEditorState, useMessages } from '../model/editor-context.ts';
import { goToField } from '../model/go-to-field.ts';
import { OpenTool } from './open-tool.tsx';
import { ToolTable } from './tool-table.tsx';

const modes = [
  { value: 'list', label: 'List all tools' },
  { value: 'search', label: 'Search: agents find, read, and call tools, and see only pinned ones' },
];

const searchHint = 'Search uses a few hundred tokens per conversation, regardless of the number of tools.';
const limitHint = 'Longer responses are cut between items or lines. Agents read the remainder with read_more.';
const serverFields = [
  declareField.choice('tool_mode', 'Tool delivery', searchHint, modes, { placeholder: 'List all tools' }),
  declareField.number('max_response_tokens', 'Max response tokens', limitHint, { placeholder: 'No limit' }),
];

type Props = {
  saveBarRef: Ref<HTMLDivElement>;
  /** Container for the actions; null if they are next to the title. */
  bar: HTMLDivElement | null;
};

/** Tools in the order in which agents see them, and the tool that is open. */
export function ToolsSection({ saveBarRef, bar }: Props) {
  const { isNew, isReadOnly } = useEditor();
  const { count, open, add, ...changes } = useToolList();
  const addButton = !isReadOnly && (
    <Button variant="default" leftSection={<IconPlus size={14} />} onClick={add}>
      Add tool
    </Button>
  );
  return (
    <Section
      title="Tools"
      isTitleHidden={!isNew}
      text="A tool is one HTTP request. Agents choose a tool by its name and description."
      actions={bar ? createPortal(addButton, bar) : addButton}
    >
      <Stack gap="xs" id={getFieldId('tools')} tabIndex={-1}>
        {count === 0 ? (
          <Text c="dimmed">No tools yet.</Text>
        ) : (
          <ToolTable count={count} open={open} onMove={changes.move} />
        )}
        <OpenTool index={open} count={count} saveBarRef={saveBarRef} {...changes} />
        <Title order={3} size="h2" mt="xl">
          Delivery to agents
        </Title>
        <TwoColumns>
          <Fields path={[]} fields={serverFields} />
        </TwoColumns>
        <Messages />
      </Stack>
    </Section>
  );
}

/** Messages about the tool list. Separate component, because they may change on every keystroke. */
function Messages() {
  const { errors, warnings } = useMessages(['tools']);
  return (
    <>
      <Errors list={errors} />
      <Warnings list={warnings} />
    </>
  );
}

/** Manages the open tool. For a stored server it is in the URL: a link opens the tool, and going back closes it. */
function useOpenTool() {
  const { store, isNew } = useEditor();
  const navigate = useNavigate();
  const { pathname, state } = useLocation();
  const [search] = useSearchParams();
  const urlName = search.get('tool');
  const getNameAt = (index: number) => asText(getValueAt(store.getState().config, ['tools', index, 'name']));
  const findIndex = (name: string | null) => {
    const index = getTools(store.getState().config).findIndex((tool) => asText(tool.name) === name);
    return index < 0 ? undefined : index;
  };
  const [open, setOpenIndex] = useState(() => (isNew ? 0 : findIndex(urlName)));
  const [lastUrlName, setLastUrlName] = useState(urlName);
  if (lastUrlName !== urlName) {
    setLastUrlName(urlName);
    // If the open tool has this name, it stays open, even if another tool has the same name.
    if (urlName === null || open === undefined || getNameAt(open) !== urlName) setOpenIndex(findIndex(urlName));
  }
  // True if the open tool has its own history entry, so that going back returns to the list.
  const hasEntry = useRef((state as { hasEntry?: boolean } | null)?.hasEntry === true);
  const setOpen = (index: number) => {
    setOpenIndex(index);
    const name = getNameAt(index);
    if (isNew || name === urlName) return;
    const replace = open !== undefined || urlName !== null;
    hasEntry.current ||= !replace;
    const address = `${pathname}?${new URLSearchParams({ tool: name })}`;
    void navigate(address, { replace, state: { hasEntry: hasEntry.current }, preventScrollReset: true });
  };
  const close = () => {
    setOpenIndex(undefined);
    if (hasEntry.current) void navigate(-1);
    else if (urlName !== null) void navigate(pathname, { replace: true, preventScrollReset: true });
    hasEntry.current = false;
  };
  useWindowEvent('toolhost:open-tool', ({ detail }) => setOpen(detail));
  // Updates the URL when a renamed tool has been saved.
  const stored = useEditorState(({ initial }) => initial);
  const rename = useEffectEvent(() => {
    if (urlName !== null && open !== undefined) setOpen(open);
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: `stored` is the trigger
  useEffect(() => rename(), [stored]);
  return { open, setOpenIndex, close };
}

/** Returns the open tool and the operations on the tool list. */
function useToolList() {
  const { store } = useEditor();
  const { open, setOpenIndex, close } = useOpenTool();
  const count = useEditorState(({ config }) => asList(config.tools).length);
  const getCurrentTools = () => getTools(store.getState().config);
  const setTools = (next: unknown[]) => store.set(['tools'], next);
  return {
    count,
    open,
    close,
    move: (from: number, to: number) => {
      const tools = getCurrentTools();
      const tool = tools[from];
      if (tool === undefined || to < 0 || to >= tools.length || from === to) return;
      setTools(tools.toSpliced(from, 1).toSpliced(to, 0, tool));
      setOpenIndex((index) => (index === undefined ? undefined : getMovedIndex(index, from, to)));
    },
    add: () => {
      setTools([...getCurrentTools(), newTool]);
      goToField(`tools[${count}].name`);
    },
    duplicate: (index: number) => {
      const tools = getCurrentTools();
      setTools(tools.toSpliced(index + 1, 0, { ...tools[index], name: createCopyName(tools, index) }));
      goToField(`tools[${index + 1}].name`);
    },
    remove: (index: number) => {
      setTools(getCurrentTools().toSpliced(index, 1));
      close();
    },
  };
}

/** Returns the index of a tool after the tool at `from` has moved to `to`. */
function getMovedIndex(index: number, from: number, to: number): number {
  if (index === from) return to;
  if (from < index && index <= to) return index - 1;
  return to <= index && index < from ? index + 1 : index;
}

/** Returns an unused name for a copy: `list_tasks` → `list_tasks_2`, or the next free number. */
function createCopyName(tools: readonly JsonObject[], index: number): string {
  const names = new Set(tools.map((tool) => asText(tool.name)));
  const base = asText(tools[index]?.name).replace(/_\d+$/, '');
  for (let number = 2; ; number++) {
    const name = `${base}_${number}`;
    if (!names.has(name)) return name;
  }
}
