package ollama_test

import (
	"testing"

	"skein/agent/model"
	"skein/agent/model/modeltest"
	"skein/agent/model/ollama"
)

func connect(t *testing.T, url string, stream bool) model.Client {
	t.Helper()
	return client(t, ollama.Options{BaseURL: url, Model: "script", Name: "script", Stream: stream, Scripted: true})
}

func TestContract(t *testing.T) {
	modeltest.Run(t, modeltest.Suite{Dialect: "ollama", Connect: connect})
}
