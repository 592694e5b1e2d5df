import { Box, Collapse, Group, MultiSelect, Stack, Text, UnstyledButton } from '@mantine/core';
import { IconChevronDown, IconChevronRight, IconTrash } from '@tabler/icons-react';
import type { JsonObject } from '../../../api-types.ts';
import { CopyButton } from '../../../ui/actions/copy-button.tsx';
import { TextLink } from '../../../ui/text/text-link.tsx';
import { toVisible } from '../../../ui/text/visible.ts';
import { asList, asText, getTools, getValueAt, getViews, isObject, type PathSegment } from '../../config.ts';
import { useCurrentServer } from '../../server-page.tsx';
import { AddButton, IconButton } from '../edit-buttons.tsx';
import { Errors, formatErrors, Warnings } from '../field-messages.tsx';
import { declareField, Fields } from '../fields.tsx';
import { getFieldId, useEditor, useEditorState, useField, useMessages, useValue } from '../model/editor-context.ts';

type Props = { name: string; isOpen: boolean; onToggle: () => void; onRemove: () => void };

/** View in the list: its header, and its form while it is open. */
export function ViewItem({ name, isOpen, onToggle, onRemove }: Props) {
  const { errors } = useMessages(['views', name]);
  const title = asText(useValue(['views', name, 'title']));
  return (
    <Box className="th-card th-tool" data-open={isOpen || undefined}>
      <Group gap={4} wrap="nowrap" px="xs" py={6} id={getFieldId(`views.${name}`)} tabIndex={-1}>
        <UnstyledButton onClick={onToggle} aria-expanded={isOpen} flex={1} miw={0} p={4}>
          <Group gap="xs" wrap="nowrap">
            {isOpen ? <IconChevronDown size={16} /> : <IconChevronRight size={16} />}
            <Text className="th-mono" fw={600} truncate>
              {toVisible(name)}
            </Text>
            <Text c="dimmed" truncate visibleFrom="sm">
              {toVisible(title)}
            </Text>
          </Group>
        </UnstyledButton>
        <IconButton label={`Remove view ${toVisible(name)}`} icon={IconTrash} onClick={onRemove} />
      </Group>
      <Box px="md" pb={errors.length > 0 ? 'xs' : 0}>
        <Errors list={errors} />
      </Box>
      <Collapse expanded={isOpen} keepMounted={false}>
        <Box p="md" pt={4}>
          <ViewForm name={name} />
        </Box>
      </Collapse>
    </Box>
  );
}

const modes = [
  { value: 'list', label: 'List all tools' },
  { value: 'search', label: 'Search' },
];

const { text, long, check, choice, json } = declareField;
const textFields = [
  text('title', 'Title', 'Replaces the server name.'),
  long('description', 'View description', 'Replaces the server description.'),
];
const readOnlyHint = 'If neither tools nor tags are set, the view contains every read-only tool.';
const settingFields = [
  check('read_only', 'Read-only tools only', readOnlyHint),
  choice('tool_mode', 'Tool delivery for this view', '', modes, { placeholder: 'List all tools' }),
];
const fixedArgumentsHint =
  'Object such as {"account": "acme"}. Sent in every call. Agents neither see nor override it.';

function ViewForm({ name }: { name: string }) {
  const path = ['views', name];
  const { isNew } = useEditor();
  return (
    <Stack gap="sm">
      {!isNew && <ViewUrl name={name} />}
      <Fields path={path} fields={textFields} />
      <ViewTools path={path} />
      <ViewTags path={path} />
      <Fields path={path} fields={settingFields} />
    </Stack>
  );
}

/** Returns the name of an entry of `tools`, which is a name or an object. */
function getEntryName(entry: unknown): string {
  return asText(isObject(entry) ? entry.name : entry);
}

function ViewTools({ path }: { path: readonly PathSegment[] }) {
  const { store } = useEditor();
  const toolsPath = [...path, 'tools'];
  const entries = asList(useValue(toolsPath));
  const names = entries.map(getEntryName);
  const choose = (chosenNames: readonly string[]) => {
    const next = chosenNames.map((name) => entries[names.indexOf(name)] ?? name);
    const hasTags = getValueAt(store.getState().config, [...path, 'tags']) !== undefined;
    store.set(toolsPath, next.length > 0 || !hasTags ? next : undefined);
  };
  return (
    <>
      <ValueSelect
        path={toolsPath}
        label="Tools"
        text="In this order. Type to search."
        getValues={(tool) => [tool.name]}
        names={names}
        choose={choose}
      />
      {entries.map((entry, index) =>
        isObject(entry) ? (
          <ToolOverrides key={getEntryName(entry)} path={[...toolsPath, index]} tool={toVisible(getEntryName(entry))} />
        ) : (
          <AddButton key={getEntryName(entry)} onClick={() => store.set([...toolsPath, index], { name: entry })}>
            {`Customize ${toVisible(getEntryName(entry))}`}
          </AddButton>
        ),
      )}
    </>
  );
}

function ViewTags({ path }: { path: readonly PathSegment[] }) {
  const { set } = useEditor();
  const tagsPath = [...path, 'tags'];
  const names = asList(useValue(tagsPath)).map(asText);
  const choose = (tags: readonly string[]) => set(tagsPath, tags.length > 0 ? tags : undefined);
  return (
    <ValueSelect
      path={tagsPath}
      label="Tags"
      text="Tools with any of these tags are also in the view."
      getValues={(tool) => asList(tool.tags)}
      names={names}
      choose={choose}
    />
  );
}

type ValueSelectProps = {
  path: readonly PathSegment[];
  label: string;
  text: string;
  /** Returns the values of a tool that can be chosen. */
  getValues: (tool: JsonObject) => readonly unknown[];
  names: readonly string[];
  choose: (names: readonly string[]) => void;
};

/** Multi-select of values that tools have. The options update when the tool list changes. */
function ValueSelect({ path, label, text, getValues, names, choose }: ValueSelectProps) {
  const { store } = useEditor();
  const field = useField(path, true);
  useEditorState(({ listRevision }) => listRevision);
  const toolValues = getTools(store.getState().config).flatMap(getValues).map(asText);
  const options = [...new Set([...toolValues, ...names])].filter((name) => name !== '');
  return (
    <div>
      <MultiSelect
        id={getFieldId(field.path)}
        label={label}
        description={text}
        data={options.map((value) => ({ value, label: toVisible(value) }))}
        value={[...names]}
        onChange={choose}
        onBlur={field.touch}
        searchable
        limit={100}
        clearable
        readOnly={field.isReadOnly}
        error={formatErrors(field.errors)}
        className="th-mono"
      />
      <Warnings list={field.warnings} />
    </div>
  );
}

function ToolOverrides({ path, tool }: { path: readonly PathSegment[]; tool: string }) {
  const fields = [
    text('title', `Title of ${tool}`),
    long('description', `Description of ${tool}`),
    json('arguments', `Fixed arguments of ${tool}`, fixedArgumentsHint, { minRows: 2 }),
  ];
  return (
    <Box component="fieldset" className="th-card" p="sm" m={0}>
      <Text component="legend" fw={600} className="th-mono" px={4}>
        {tool}
      </Text>
      <Stack gap="sm">
        <Fields path={path} fields={fields} />
      </Stack>
    </Box>
  );
}

/** URL of a saved view, and a link to connect a client to it. */
function ViewUrl({ name }: { name: string }) {
  const { server, config } = useCurrentServer();
  const url = `${server.url}/${name}`;
  if (!Object.hasOwn(getViews(config), name)) {
    return <Text c="dimmed">After you save, agents can reach it at {toVisible(url)}.</Text>;
  }
  return (
    <Group gap="xs">
      <Text className="th-mono">{toVisible(url)}</Text>
      <CopyButton value={url} label={`Copy URL of ${toVisible(name)}`} />
      <TextLink to={`/servers/${server.slug}/connect?view=${encodeURIComponent(name)}`}>Connect a client</TextLink>
    </Group>
  );
}
