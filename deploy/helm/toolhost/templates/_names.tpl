{{- define "toolhost.labels" -}}
app.kubernetes.io/name: toolhost
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
