package anthropic_test

import (
	"testing"

	"skein/agent/model"
	"skein/agent/model/anthropic"
	"skein/agent/model/modeltest"
)

func connect(t *testing.T, url string, stream bool) model.Client {
	t.Helper()
	return client(t, anthropic.Options{BaseURL: url, Model: "script", Name: "script", Stream: stream, Scripted: true})
}

func TestContract(t *testing.T) {
	modeltest.Run(t, modeltest.Suite{Dialect: "anthropic", Connect: connect})
}
