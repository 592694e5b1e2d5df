import { Button, Stack, Text } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import { IconPlus } from '@tabler/icons-react';
import { useState } from 'react';
import type { JsonObject } from '../../../answers.ts';
import { Section } from '../../../ui/section.tsx';
import { newTool, textOf, toolsOf } from '../../config.ts';
import { ChoiceField, NumberField } from '../config-fields.tsx';
import { Errors, Warnings } from '../field-messages.tsx';
import { useEditor, useField } from '../model/editor-context.ts';
import { openToolEvent } from '../model/go-to-field.ts';
import { ToolItem } from './tool-item.tsx';

const modes = [
  { value: 'list', label: 'All of them in a list' },
  { value: 'search', label: 'By search: they find, read and call tools, and see those that are pinned' },
];

/** The tools in the order in which agents see them. One is open at a time. */
export function ToolsSection() {
  const { config, set, isNew, isReadOnly } = useEditor();
  const field = useField(['tools']);
  const tools = toolsOf(config);
  const [open, setOpen] = useState<number | undefined>(isNew || tools.length === 1 ? 0 : undefined);
  const [dragged, setDragged] = useState<number>();
  useWindowEvent(openToolEvent as 'click', ((event: CustomEvent<number>) => setOpen(event.detail)) as never);
  const store = (next: unknown[]) => set(['tools'], next);
  const move = (from: number, to: number) => {
    if (to < 0 || to >= tools.length || from === to) return;
    store(moved(tools, from, to));
    setOpen((now) => (now === from ? to : now === to ? from : now));
  };
  const add = () => {
    store([...tools, newTool]);
    setOpen(tools.length);
  };
  const duplicate = (index: number) => {
    const copy = { ...tools[index], name: copyName(tools, index) };
    store(tools.toSpliced(index + 1, 0, copy));
    setOpen(index + 1);
  };
  const remove = (index: number) => {
    store(tools.toSpliced(index, 1));
    setOpen(undefined);
  };
  return (
    <Section
      title="Tools"
      text="A tool is one HTTP request. Agents choose a tool by its name and description."
      actions={
        !isReadOnly && (
          <Button variant="default" size="xs" leftSection={<IconPlus size={14} />} onClick={add}>
            Add a tool
          </Button>
        )
      }
    >
      <Stack gap="xs" id={field.id} tabIndex={-1}>
        <ChoiceField
          path={['tool_mode']}
          label="How agents get the tools"
          text="A search costs a conversation some hundred tokens, however many tools there are."
          choices={modes}
          placeholder="All of them in a list"
        />
        <NumberField
          path={['max_answer_tokens']}
          label="Most tokens of an answer"
          text="A longer answer is cut between items or lines, and agents read the rest with read_more."
          placeholder="No limit"
        />
        {tools.length === 0 && (
          <Text size="sm" c="dimmed">
            No tools yet.
          </Text>
        )}
        {tools.map((_, index) => (
          <ToolItem
            // biome-ignore lint/suspicious/noArrayIndexKey: a tool has no identity but its index
            key={index}
            index={index}
            count={tools.length}
            isOpen={open === index}
            onToggle={() => setOpen((now) => (now === index ? undefined : index))}
            onMove={(to) => move(index, to)}
            onDuplicate={() => duplicate(index)}
            onRemove={() => remove(index)}
            onDrag={() => setDragged(index)}
            onDrop={() => dragged !== undefined && move(dragged, index)}
          />
        ))}
        <Errors list={field.errors} />
        <Warnings list={field.warnings} />
      </Stack>
    </Section>
  );
}

function moved<Item>(list: readonly Item[], from: number, to: number): Item[] {
  const item = list[from];
  return item === undefined ? [...list] : list.toSpliced(from, 1).toSpliced(to, 0, item);
}

/** `list_tasks` → `list_tasks_2`, or the next number that is free. */
function copyName(tools: readonly JsonObject[], index: number): string {
  const names = new Set(tools.map((tool) => textOf(tool.name)));
  const base = textOf(tools[index]?.name).replace(/_\d+$/, '');
  for (let number = 2; ; number++) {
    const name = `${base}_${number}`;
    if (!names.has(name)) return name;
  }
}
